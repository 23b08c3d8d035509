// The beginning: read the session (or go to sign in), find the workspace in the address, show the shell.

import "@patternfly/react-core/dist/styles/base.css";
import "./shell/shell.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router/dom";
import { adviceFor, messageOf } from "./api/errors";
import { PATIENCE_MS } from "./api/request";
import { beginSession, loginPath, pageOfPath, pathIn, type Session, workspaceOfPath } from "./api/session";
import { preload } from "./pages";
import { makeRouter } from "./router";
import { StartFailed } from "./shell/StartFailed";
import { applyTheme } from "./shell/theme";

async function start(): Promise<void> {
    applyTheme();
    const root = createRoot(document.getElementById("root") as HTMLElement);
    const fail = (message: string, advice: string): void => root.render(<StartFailed message={message} advice={advice} />);
    // While the session is asked for.
    const page = preload(pageOfPath(location.pathname));
    let answer: Response;
    try {
        answer = await fetch("/auth/session", { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE_MS.reading) });
    } catch (thrown) {
        return fail(String(thrown), adviceFor(0));
    }
    if (answer.status === 401) {
        location.replace(loginPath());
        return;
    }
    const body: unknown = await answer.json().catch(() => undefined);
    if (!answer.ok || !body) return fail(messageOf(body, answer.statusText).message, adviceFor(answer.status));
    const session = body as Session;
    const place = workspaceOfPath(location.pathname) ?? session.workspace;
    if (workspaceOfPath(location.pathname) === undefined) {
        history.replaceState(null, "", pathIn(place, location.pathname) + location.search);
    }
    beginSession(session, place);
    await page;
    root.render(
        <StrictMode>
            <RouterProvider router={makeRouter(`/w/${place}`)} />
        </StrictMode>,
    );
}

void start();
