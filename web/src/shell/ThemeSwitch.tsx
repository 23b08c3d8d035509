// Light, dark, or as the system has it.

import { Dropdown, DropdownItem, DropdownList } from "@patternfly/react-core/dist/dynamic/components/Dropdown";
import { MenuToggle } from "@patternfly/react-core/dist/dynamic/components/MenuToggle";
import MoonIcon from "@patternfly/react-icons/dist/esm/icons/moon-icon";
import SunIcon from "@patternfly/react-icons/dist/esm/icons/sun-icon";
import { useState } from "react";
import { t } from "../text/shell";
import { chooseTheme, chosenTheme, type Theme, THEMES } from "./theme";

const WORDS = { system: "themeSystem", light: "themeLight", dark: "themeDark" } as const;

export function ThemeSwitch() {
    const [isOpen, setOpen] = useState(false);
    const [theme, setTheme] = useState(chosenTheme);
    const choose = (to: Theme): void => {
        chooseTheme(to);
        setTheme(to);
        setOpen(false);
    };
    const label = t("theme", { name: t(WORDS[theme]) });
    return (
        <Dropdown
            isOpen={isOpen}
            onOpenChange={setOpen}
            popperProps={{ position: "right" }}
            toggle={ref => <MenuToggle ref={ref} variant="plain" onClick={() => setOpen(!isOpen)} isExpanded={isOpen} aria-label={label} title={label} icon={theme === "light" ? <SunIcon /> : <MoonIcon />} />}
        >
            <DropdownList>
                {THEMES.map(one => <DropdownItem key={one} isSelected={one === theme} onClick={() => choose(one)}>{t(WORDS[one])}</DropdownItem>)}
            </DropdownList>
        </Dropdown>
    );
}
