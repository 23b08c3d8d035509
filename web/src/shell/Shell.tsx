// The frame around every page: masthead, navigation, state of the stream, notifications.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Masthead, MastheadBrand, MastheadContent, MastheadLogo, MastheadMain, MastheadToggle } from "@patternfly/react-core/dist/dynamic/components/Masthead";
import { Nav, NavItem, NavList } from "@patternfly/react-core/dist/dynamic/components/Nav";
import { Page, PageSidebar, PageSidebarBody } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SkipToContent } from "@patternfly/react-core/dist/dynamic/components/SkipToContent";
import BarsIcon from "@patternfly/react-icons/dist/esm/icons/bars-icon";
import { useEffect, useState } from "react";
import { Link, Outlet, useLocation } from "react-router";
import { hasPage, preload } from "../pages";
import { t } from "../text/shell";
import { Arrival } from "./Arrival";
import { NAVIGATION } from "./navigation";
import { Notifications, Toasts } from "./Notifications";
import { StreamBanner } from "./StreamBanner";
import { ThemeSwitch } from "./ThemeSwitch";
import { UserMenu } from "./UserMenu";
import { WorkspaceSwitcher } from "./WorkspaceSwitcher";
import icon from "./icon.svg";

const NARROW = "(max-width: 75rem)";

export function Shell() {
    const { pathname } = useLocation();
    const current = pathname.split("/")[1] ?? "";
    const [isOpen, setOpen] = useState(() => !matchMedia(NARROW).matches);
    useEffect(() => {
        // On a phone the navigation covers the page that was just chosen.
        if (matchMedia(NARROW).matches) setOpen(false);
    }, [current]);

    const masthead = (
        <Masthead>
            <MastheadMain>
                <MastheadToggle>
                    <Button variant="plain" aria-label={t("toggleNavigation")} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} icon={<BarsIcon />} />
                </MastheadToggle>
                <MastheadBrand>
                    <MastheadLogo component={props => <Link {...props} to="/home" />} className="fw-logo">
                        <img src={icon} alt="" width={28} height={28} />
                        <span className="fw-logo-text">{t("portal")}</span>
                    </MastheadLogo>
                </MastheadBrand>
            </MastheadMain>
            <MastheadContent className="fw-masthead-content">
                <WorkspaceSwitcher />
                <span className="fw-spring" />
                <ThemeSwitch />
                <Notifications />
                <UserMenu />
            </MastheadContent>
        </Masthead>
    );
    const sidebar = (
        <PageSidebar isSidebarOpen={isOpen}>
            <PageSidebarBody>
                <Nav aria-label={t("navigation")}>
                    <NavList>
                        {NAVIGATION.filter(entry => hasPage(entry.path)).map(entry => (
                            <NavItem key={entry.path} itemId={entry.path} isActive={current === entry.path} onMouseEnter={() => void preload(entry.path)}>
                                <Link to={`/${entry.path}`}>{entry.label()}</Link>
                            </NavItem>
                        ))}
                    </NavList>
                </Nav>
            </PageSidebarBody>
        </PageSidebar>
    );
    return (
        <Page
            masthead={masthead}
            sidebar={sidebar}
            skipToContent={<SkipToContent href="#main">{t("skip")}</SkipToContent>}
            mainContainerId="main"
            mainTabIndex={-1}
            isContentFilled
            // PatternFly looks how wide the window is only for who wants to know, and else hides the navigation of a narrow one for good.
            onPageResize={() => undefined}
        >
            <Arrival main="main" />
            <StreamBanner />
            <Outlet />
            <Toasts />
        </Page>
    );
}
