import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import CopyIcon from "@patternfly/react-icons/dist/esm/icons/copy-icon";
import { useState } from "react";
import { t } from "../text/shell";

export function CopyButton({ text, label = t("copy") }: { text: string; label?: string }) {
    const [isCopied, setCopied] = useState(false);
    const copy = async (): Promise<void> => {
        await navigator.clipboard.writeText(text).catch(() => undefined);
        setCopied(true);
        setTimeout(() => setCopied(false), 1500);
    };
    return (
        <Button variant="link" isInline icon={<CopyIcon />} onClick={() => void copy()}>
            {isCopied ? t("copied") : label}
        </Button>
    );
}
