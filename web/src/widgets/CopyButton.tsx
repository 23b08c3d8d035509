import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import CopyIcon from "@patternfly/react-icons/dist/esm/icons/copy-icon";
import { useState } from "react";
import { t } from "../text/shell";

async function writeClipboard(text: string): Promise<void> {
    await navigator.clipboard.writeText(text);
}

export function CopyButton({ text, label = t("copy") }: { text: string; label?: string }) {
    const [outcome, setOutcome] = useState<"copied" | "notCopied">();
    const copy = async (): Promise<void> => {
        // Browsers may refuse, and without a secure connection there is no clipboard at all.
        setOutcome(await writeClipboard(text).then(() => "copied" as const, () => "notCopied" as const));
        setTimeout(() => setOutcome(undefined), 3000);
    };
    return (
        <Button variant="link" isInline icon={<CopyIcon />} onClick={() => void copy()}>
            <span aria-live="polite">{outcome ? t(outcome) : label}</span>
        </Button>
    );
}
