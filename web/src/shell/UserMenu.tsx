import { Divider } from "@patternfly/react-core/dist/dynamic/components/Divider";
import { Dropdown, DropdownItem, DropdownList } from "@patternfly/react-core/dist/dynamic/components/Dropdown";
import { MenuToggle } from "@patternfly/react-core/dist/dynamic/components/MenuToggle";
import UserIcon from "@patternfly/react-icons/dist/esm/icons/user-icon";
import { useState } from "react";
import { asApiError } from "../api/errors";
import { request } from "../api/request";
import { session } from "../api/session";
import { dropDrafts, shelf } from "../form/draft";
import { t } from "../text/shell";
import { notify } from "./notify";

/** Ends the session on the server and leaves the page. Whoever walks away has to know if it did not end. */
async function signOut(): Promise<void> {
    try {
        await request("/auth/logout", { method: "POST" });
    } catch (thrown) {
        const error = asApiError(thrown);
        // Without a session there is nothing to end.
        if (error.status !== 401) {
            notify("danger", t("notSignedOut"), `${error.message}. ${error.advice}`);
            return;
        }
    }
    // Who comes next in this tab must not read what was answered here.
    dropDrafts(shelf(), "all");
    location.assign("/");
}

export function UserMenu() {
    const [isOpen, setOpen] = useState(false);
    const { user, version } = session();
    const name = user.displayName || user.name;
    return (
        <Dropdown
            isOpen={isOpen}
            onOpenChange={setOpen}
            popperProps={{ position: "right" }}
            toggle={ref => (
                <MenuToggle ref={ref} variant="plain" onClick={() => setOpen(!isOpen)} isExpanded={isOpen} aria-label={t("userMenu", { name })} icon={<UserIcon />}>
                    <span className="fw-wide-only">{name}</span>
                </MenuToggle>
            )}
        >
            <DropdownList>
                <DropdownItem isDisabled description={user.email ?? user.name} key="who">{name}</DropdownItem>
                {version && <DropdownItem isDisabled key="version">{t("version", { version })}</DropdownItem>}
                <Divider component="li" />
                <DropdownItem key="out" onClick={() => void signOut()}>{t("signOut")}</DropdownItem>
            </DropdownList>
        </Dropdown>
    );
}
