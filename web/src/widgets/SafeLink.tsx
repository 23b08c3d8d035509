// Links from objects: only http and https, and only as text where they are anything else.

import type { ReactNode } from "react";
import { pathIn, session, workspace } from "../api/session";
import { hostedRepository, safeAddress } from "./address";

export function SafeLink({ to, children }: { to: string | undefined; children?: ReactNode }) {
    const address = safeAddress(to);
    if (!address) return <span>{children ?? to}</span>;
    const repository = hostedRepository(address, session().gitUrl);
    const target = repository ? pathIn(workspace(), repository) : address;
    const isOutside = new URL(target, location.href).origin !== location.origin;
    return (
        // eslint-disable-next-line no-restricted-syntax -- the address was judged above.
        <a href={target} {...(isOutside ? { target: "_blank", rel: "noopener noreferrer" } : {})}>
            {children ?? to}
        </a>
    );
}
