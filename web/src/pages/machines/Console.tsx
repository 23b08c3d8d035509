// The serial console and the screen of a machine, over WebSockets.
//
// A guest can send whatever it likes. What it sends to the terminal changes the terminal and nothing else: titles, the clipboard, links
// and answers to questions about the terminal are thrown away.

import "@xterm/xterm/css/xterm.css";
import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import RFB from "@novnc/novnc";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { t } from "../../text/machines";
import { StatusLabel } from "../../widgets";
import { streamAddress, SUBPROTOCOL } from "./act";
import { leaver } from "./leave";
import { withNonce } from "./nonced";
import { ScreenTools } from "./ScreenTools";

type Phase = "connecting" | "connected" | "ended" | "failed";

/** Operating system commands that a guest may not give: title and icon, colours of the window, directory, links, notifications, clipboard, iTerm's own. */
const REFUSED_COMMANDS = [0, 1, 2, 4, 7, 8, 9, 10, 11, 12, 50, 52, 99, 104, 110, 111, 112, 133, 633, 777, 1337];

/** Makes the terminal deaf to everything that reaches beyond it. */
function guard(terminal: Terminal): void {
    for (const command of REFUSED_COMMANDS) terminal.parser.registerOscHandler(command, () => true);
    // Window manipulation, device attributes and status: answers would be typed into the guest.
    for (const final of ["t", "c", "n"]) terminal.parser.registerCsiHandler({ final }, () => true);
    terminal.parser.registerCsiHandler({ prefix: ">", final: "c" }, () => true);
    terminal.parser.registerCsiHandler({ prefix: "?", final: "n" }, () => true);
    terminal.parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
    terminal.parser.registerCsiHandler({ intermediates: "$", final: "p" }, () => true);
    terminal.parser.registerCsiHandler({ prefix: "?", intermediates: "$", final: "p" }, () => true);
    // Whether somebody looks at the page is none of the guest's business either.
    terminal.parser.registerCsiHandler({ prefix: "?", final: "h" }, modes => modes.includes(1004));
}

/** Bytes that wait to be drawn. A browser's socket cannot be slowed down, and the terminal throws when 50 MB wait. */
const MOST_WAITING = 2 * 1024 * 1024;

/** Writes what there is time for. What is left out would have scrolled away before anybody could read it; that it is missing is said. */
function drawer(terminal: Terminal): (piece: string | Uint8Array) => void {
    let waiting = 0;
    let left = 0;
    return piece => {
        if (waiting + piece.length > MOST_WAITING) {
            left += piece.length;
            return;
        }
        if (left > 0) terminal.write(`\r\n\x1b[0m[${t("leftOut", { n: left })}]\r\n`);
        left = 0;
        waiting += piece.length;
        terminal.write(piece, () => { waiting -= piece.length; });
    };
}

export default function Console(props: { namespace: string; name: string }): ReactNode {
    const [params, setParams] = useSearchParams();
    const isScreen = params.get("type") === "vnc";
    const [turn, setTurn] = useState(0);
    const choose = (type: string): void => setParams(before => { before.set("type", type); return before; });
    const key = `${props.namespace}/${props.name} ${turn}`;
    const again = (): void => setTurn(before => before + 1);
    return (
        <>
            <ToggleGroup aria-label={t("consoleType")}>
                <ToggleGroupItem text={t("serial")} isSelected={!isScreen} onChange={() => choose("serial")} />
                <ToggleGroupItem text={t("vnc")} isSelected={isScreen} onChange={() => choose("vnc")} />
            </ToggleGroup>
            {isScreen ? <Screen key={`vnc ${key}`} {...props} again={again} isAgain={turn > 0} /> : <Serial key={`serial ${key}`} {...props} again={again} isAgain={turn > 0} />}
            <p id={AFTER} tabIndex={-1} className="fw-muted">{t("password")}</p>
        </>
    );
}

interface StreamProps {
    namespace: string;
    name: string;
    again: () => void;
    /** Somebody has asked for another connection: the button that he pressed is gone, and he wants to type. */
    isAgain: boolean;
}

const [HINT, AFTER] = ["console-hint", "console-after"];

/** The keys by which a console is left; they are heard before the console hears them. */
function useLeaving(place: RefObject<HTMLElement | null>): void {
    useEffect(() => {
        const where = place.current;
        if (!where) return;
        // After the console has heard the last key, too.
        const hear = leaver(() => setTimeout(() => document.getElementById(AFTER)?.focus()));
        where.addEventListener("keydown", hear, true);
        where.addEventListener("keyup", hear, true);
        return () => {
            where.removeEventListener("keydown", hear, true);
            where.removeEventListener("keyup", hear, true);
        };
    }, [place]);
}

function Hint(): ReactNode {
    return <p id={HINT} className="fw-muted">{t("leaveConsole")}</p>;
}

function Stand(props: { phase: Phase; again: () => void }): ReactNode {
    if (props.phase === "connecting") return <span role="status"><StatusLabel word={t("connecting")} tone="blue" /></span>;
    if (props.phase === "connected") return <span role="status"><StatusLabel word={t("connected")} tone="green" /></span>;
    return <Alert variant={props.phase === "failed" ? "danger" : "info"} isInline title={t(props.phase)} actionLinks={<Button variant="link" isInline onClick={props.again}>{t("connectAgain")}</Button>} />;
}

function Serial(props: StreamProps): ReactNode {
    const { namespace, name, isAgain } = props;
    const place = useRef<HTMLDivElement>(null);
    const [phase, setPhase] = useState<Phase>("connecting");
    useLeaving(place);
    useEffect(() => {
        const where = place.current;
        if (!where) return;
        const terminal = new Terminal({ scrollback: 5_000, screenReaderMode: true, cursorBlink: false, linkHandler: null, allowProposedApi: false, fontSize: 14 });
        const fit = new FitAddon();
        terminal.loadAddon(fit);
        guard(terminal);
        withNonce(() => terminal.open(where));
        fit.fit();
        terminal.textarea?.setAttribute("aria-describedby", HINT);
        const observer = new ResizeObserver(() => fit.fit());
        observer.observe(where);
        const socket = new WebSocket(streamAddress(namespace, name, "console"), SUBPROTOCOL);
        socket.binaryType = "arraybuffer";
        let wasOpen = false;
        socket.onopen = () => { wasOpen = true; setPhase("connected"); if (isAgain) terminal.focus(); };
        socket.onclose = () => setPhase(wasOpen ? "ended" : "failed");
        const draw = drawer(terminal);
        socket.onmessage = event => draw(typeof event.data === "string" ? event.data : new Uint8Array(event.data as ArrayBuffer));
        const encoder = new TextEncoder();
        const typing = terminal.onData(text => { if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text)); });
        return () => {
            socket.onclose = null;
            socket.close();
            typing.dispose();
            observer.disconnect();
            terminal.dispose();
        };
    }, [namespace, name, isAgain]);
    return <><Stand phase={phase} again={props.again} /><Hint /><div ref={place} className="fw-terminal" /></>;
}

function Screen(props: StreamProps): ReactNode {
    const { namespace, name, isAgain } = props;
    const place = useRef<HTMLDivElement>(null);
    useLeaving(place);
    const shown = useRef<RFB>(null);
    const [phase, setPhase] = useState<Phase>("connecting");
    useEffect(() => {
        if (!place.current) return;
        let wasOpen = false;
        const screen = new RFB(place.current, streamAddress(namespace, name, "vnc"), { wsProtocols: [SUBPROTOCOL], shared: true });
        shown.current = screen;
        screen.scaleViewport = true;
        screen.background = "#151515";
        // The library's screen is reached by the mouse alone.
        const canvas = place.current.querySelector("canvas");
        canvas?.setAttribute("tabindex", "0");
        canvas?.setAttribute("role", "application");
        canvas?.setAttribute("aria-label", t("vnc"));
        canvas?.setAttribute("aria-describedby", HINT);
        const opened = (): void => { wasOpen = true; setPhase("connected"); if (isAgain) screen.focus(); };
        const closed = (): void => setPhase(wasOpen ? "ended" : "failed");
        screen.addEventListener("connect", opened);
        screen.addEventListener("disconnect", closed);
        return () => {
            screen.removeEventListener("disconnect", closed);
            screen.disconnect();
            shown.current = null;
        };
    }, [namespace, name, isAgain]);
    const isOver = phase === "ended" || phase === "failed";
    return (
        <>
            {isOver && <Stand phase={phase} again={props.again} />}
            <div className="fw-row-gap">
                {!isOver && <Stand phase={phase} again={props.again} />}
                <ScreenTools
                    isConnected={phase === "connected"} send={({ keysym, code, down }) => shown.current?.sendKey(keysym, code, down)}
                    onDone={() => shown.current?.focus()} onFullScreen={() => void place.current?.requestFullscreen().then(() => shown.current?.focus(), () => undefined)}
                />
            </div>
            <Hint />
            <div ref={place} className="fw-screen" role="region" aria-label={t("vnc")} />
        </>
    );
}
