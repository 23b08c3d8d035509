// An object as YAML, read only. The text is text: nothing in it is interpreted.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { memo, useMemo } from "react";
import { stringify } from "yaml";
import { t } from "../text/shell";
import { CopyButton } from "./CopyButton";
import { pieces } from "./highlight";
import { masked } from "./secrets";

/** What is shown of it at once; the whole can be downloaded. A browser lays out no line of megabytes, and no million of lines. */
const MAX_LINES = 5000;
const MAX_LETTERS = 500_000;

export function toYaml(value: unknown): string {
    return typeof value === "string" ? value : stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}

export const CodeView = memo(function CodeView({ text, name, isYaml = true }: { text: string; name: string; isYaml?: boolean }) {
    const lines = useMemo(() => text.slice(0, MAX_LETTERS).split("\n").slice(0, MAX_LINES), [text]);
    const isCut = text.length > MAX_LETTERS || lines.length === MAX_LINES;
    return (
        <div>
            <div className="fw-row-gap">
                <CopyButton text={text} />
                <Button variant="link" isInline onClick={() => download(text, name)}>{t("download")}</Button>
            </div>
            {isCut && <p className="fw-muted">{t("onlyBeginning")}</p>}
            <pre className="fw-code" tabIndex={0} role="region" aria-label={name}>
                {lines.map((line, at) => (
                    <span key={at}>
                        {isYaml ? pieces(line).map((piece, n) => <span key={n} className={piece.kind}>{piece.text}</span>) : line}
                        {"\n"}
                    </span>
                ))}
                {isCut && "…"}
            </pre>
        </div>
    );
});

/** An object, but for what is in it if it is a Secret: nobody has asked for that. */
export function YamlView({ value, name }: { value: unknown; name: string }) {
    return <CodeView text={useMemo(() => toYaml(masked(value)), [value])} name={name} />;
}

function download(text: string, name: string): void {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = name.replace(/[^\w.-]+/g, "_");
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
}
