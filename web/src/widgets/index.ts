// What pages are made of.

export { Age, useNow } from "./Age";
export { duration, shortAge } from "./age";
export { safeAddress } from "./address";
export { sh, shellWord } from "./command";
export { Answered, Stale } from "./Answered";
export { CommandHint } from "./CommandHint";
export { type Condition, Conditions } from "./Conditions";
export { Confirm, ConfirmByName } from "./ConfirmByName";
export { CopyButton } from "./CopyButton";
export { Events } from "./Events";
export { PageHeader } from "./PageHeader";
export { Problem } from "./Problem";
export { SafeLink } from "./SafeLink";
export { masked, maskedTogether } from "./secrets";
export { Empty, Failed, Loading, NoMatch, NotFound } from "./States";
export { conditionTone, type Tone, toneOf } from "./status";
export { StatusLabel } from "./StatusLabel";
export { type Column, sorted, VirtualTable } from "./VirtualTable";
export { EXPLAINED, Why, WhyOf } from "./Why";
export { CodeView, toYaml, YamlView } from "./YamlView";
