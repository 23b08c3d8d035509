// Style sheets with the page's nonce. A terminal writes its colours and sizes into style sheets of its own when it is opened, which the
// page's policy refuses without one, and it has no setting for it.

/** The nonce of this page, which the server wrote into it. */
function nonce(): string {
    return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}

/** Does something; style sheets that are made meanwhile carry the nonce. */
export function withNonce(act: () => void): void {
    const word = nonce();
    const make = document.createElement.bind(document);
    // On the document itself, before the method that it inherits; taken away again below.
    document.createElement = ((tag: string, options?: ElementCreationOptions) => {
        const made = make(tag, options);
        if (made instanceof HTMLStyleElement) made.nonce = word;
        return made;
    }) as typeof document.createElement;
    try {
        act();
    } finally {
        delete (document as Partial<Document>).createElement;
    }
}
