// The way out of a console with the keyboard. A console takes every key, also Tab: without a way out nobody leaves it who has no mouse.

type Pressed = Pick<KeyboardEvent, "type" | "key" | "ctrlKey" | "altKey" | "shiftKey">;

const MODIFIERS = new Set(["Control", "Alt", "Shift"]);

/** Listens for Ctrl+Alt+Shift, pressed together and let go without another key: alone they mean nothing to a guest, and with another key they
 * are the guest's. It leaves when the last of them is up, so that the guest does not take one for held for ever. */
export function leaver(leave: () => void): (event: Pressed) => void {
    let isMeant = false;
    return ({ type, key, ctrlKey, altKey, shiftKey }) => {
        if (type === "keydown") isMeant = MODIFIERS.has(key) && (isMeant || (ctrlKey && altKey && shiftKey));
        else if (isMeant && !ctrlKey && !altKey && !shiftKey) {
            isMeant = false;
            leave();
        }
    };
}
