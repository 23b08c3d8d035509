// Which workspace the page is about, and the way to those above and below it. Another workspace is another page load: nothing of the
// old one stays in memory.

import { Dropdown, DropdownItem, DropdownList } from "@patternfly/react-core/dist/dynamic/components/Dropdown";
import { MenuToggle } from "@patternfly/react-core/dist/dynamic/components/MenuToggle";
import { useState } from "react";
import { useLocation } from "react-router";
import { useAnswer } from "../api/hooks";
import { WORKSPACES } from "../api/kinds";
import { list } from "../api/kubernetes";
import { pathIn, workspace } from "../api/session";
import { t } from "../text/shell";

export function WorkspaceSwitcher() {
    const [isOpen, setOpen] = useState(false);
    const here = workspace();
    const page = useLocation().pathname.split("/")[1] ?? "home";
    const above = here.includes(":") ? here.slice(0, here.lastIndexOf(":")) : undefined;
    const go = (place: string): void => location.assign(pathIn(place, `/${page}`));
    return (
        <Dropdown
            isOpen={isOpen}
            onOpenChange={setOpen}
            isScrollable
            toggle={ref => (
                <MenuToggle ref={ref} onClick={() => setOpen(!isOpen)} isExpanded={isOpen} aria-label={t("workspace", { name: here })} className="fw-workspace">
                    {here}
                </MenuToggle>
            )}
        >
            <DropdownList aria-label={t("workspaceChoose")}>
                {above && <DropdownItem onClick={() => go(above)}>{t("workspaceUp", { name: above })}</DropdownItem>}
                <DropdownItem isDisabled>{here}</DropdownItem>
                {isOpen && <Below here={here} go={go} />}
            </DropdownList>
        </Dropdown>
    );
}

function Below({ here, go }: { here: string; go: (place: string) => void }) {
    const below = useAnswer(`workspaces ${here}`, signal => list(WORKSPACES, {}, { signal }));
    if (below.error) return <DropdownItem isDisabled>{below.error.status === 403 ? t("workspaceForbidden") : below.error.advice}</DropdownItem>;
    return (below.answer?.items ?? []).map(one => {
        const name = `${here}:${one.metadata?.name ?? ""}`;
        return <DropdownItem key={name} onClick={() => go(name)}>{name}</DropdownItem>;
    });
}
