// Before tests: PatternFly's modules ask for their styles, which Node would take for programs.

import { createRequire } from "node:module";

createRequire(import.meta.url).extensions[".css"] = () => undefined;
