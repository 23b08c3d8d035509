// Which workspace the page is about, and the way to those above and below it. Another workspace is another page load: nothing of the
// old one stays in memory. There may be thousands: they are searched, and only some of them are drawn.

import { Divider } from "@patternfly/react-core/dist/dynamic/components/Divider";
import { Dropdown, DropdownItem, DropdownList } from "@patternfly/react-core/dist/dynamic/components/Dropdown";
import { MenuSearch, MenuSearchInput } from "@patternfly/react-core/dist/dynamic/components/Menu";
import { MenuToggle } from "@patternfly/react-core/dist/dynamic/components/MenuToggle";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { useState } from "react";
import { useLocation } from "react-router";
import { useAnswer } from "../api/hooks";
import { WORKSPACES } from "../api/kinds";
import { list } from "../api/kubernetes";
import { pathIn, workspace } from "../api/session";
import { t } from "../text/shell";
import { placesWith } from "./places";

/** With fewer nobody needs to search. */
const WORTH_SEARCHING = 8;

export function WorkspaceSwitcher() {
    const [isOpen, setOpen] = useState(false);
    const here = workspace();
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
            {isOpen && <Choices here={here} />}
        </Dropdown>
    );
}

function Choices({ here }: { here: string }) {
    const [typed, setTyped] = useState("");
    const page = useLocation().pathname.split("/")[1] ?? "home";
    const above = here.includes(":") ? here.slice(0, here.lastIndexOf(":")) : undefined;
    const go = (place: string): void => location.assign(pathIn(place, `/${page}`));
    const below = useAnswer(`workspaces ${here}`, async signal => (await list(WORKSPACES, {}, { signal })).items.map(one => `${here}:${one.metadata?.name ?? ""}`));
    const names = below.answer ?? [];
    const { shown, more } = placesWith(names, typed);
    const [first] = shown;
    return (
        <>
            {names.length >= WORTH_SEARCHING && (
                <>
                    <MenuSearch>
                        <MenuSearchInput>
                            <TextInput
                                type="search" aria-label={t("workspaceSearch")} placeholder={t("workspaceSearch")} value={typed} onChange={(_, text) => setTyped(text)} autoComplete="off"
                                onKeyDown={event => {
                                    if (event.key === "Enter" && typed.trim() !== "" && first !== undefined) go(first);
                                }}
                            />
                        </MenuSearchInput>
                    </MenuSearch>
                    <Divider />
                </>
            )}
            <DropdownList aria-label={t("workspaceChoose")}>
                {above && <DropdownItem key="above" onClick={() => go(above)}>{t("workspaceUp", { name: above })}</DropdownItem>}
                <DropdownItem key="here" isDisabled>{here}</DropdownItem>
                {below.isLoading && <DropdownItem key="loading" isDisabled>{t("loading")}</DropdownItem>}
                {below.error && <DropdownItem key="error" isDisabled>{below.error.status === 403 ? t("workspaceForbidden") : below.error.advice}</DropdownItem>}
                {shown.map(name => <DropdownItem key={name} onClick={() => go(name)}>{name}</DropdownItem>)}
                {typed !== "" && shown.length === 0 && <DropdownItem key="none" isDisabled>{t("noMatchTitle")}</DropdownItem>}
                {more > 0 && <DropdownItem key="more" isDisabled>{t("workspaceMore", { n: more })}</DropdownItem>}
            </DropdownList>
        </>
    );
}
