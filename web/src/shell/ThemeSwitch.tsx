import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import MoonIcon from "@patternfly/react-icons/dist/esm/icons/moon-icon";
import SunIcon from "@patternfly/react-icons/dist/esm/icons/sun-icon";
import { useState } from "react";
import { t } from "../text/shell";
import { isDark, setDark } from "./theme";

export function ThemeSwitch() {
    const [dark, set] = useState(isDark);
    const change = (): void => {
        setDark(!dark);
        set(!dark);
    };
    const label = dark ? t("lightMode") : t("darkMode");
    return <Button variant="plain" aria-label={label} title={label} onClick={change} icon={dark ? <SunIcon /> : <MoonIcon />} />;
}
