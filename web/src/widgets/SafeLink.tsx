// Links from objects: only http and https, and only as text where they are anything else.

import type { ReactNode } from "react";
import { safeAddress } from "./address";

export function SafeLink({ to, children }: { to: string | undefined; children?: ReactNode }) {
    const address = safeAddress(to);
    if (!address) return <span>{children ?? to}</span>;
    const isOutside = new URL(address, location.href).origin !== location.origin;
    return (
        // eslint-disable-next-line no-restricted-syntax -- the address was judged in the line above.
        <a href={address} {...(isOutside ? { target: "_blank", rel: "noopener noreferrer" } : {})}>
            {children ?? to}
        </a>
    );
}
