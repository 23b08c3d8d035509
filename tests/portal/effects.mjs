// What came of a click, asked beside the browser: kubectl, with the administrator's kubeconfig. A page that only says that it did something
// is found out.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export class Effects {
    constructor({ path, kubeconfig, data }) {
        this.environment = { ...process.env, PATH: path, KUBECONFIG: kubeconfig, FAIRWAY_DATA: data };
        // It would have the last word about whom git trusts, also of this Fairway.
        delete this.environment.GIT_SSL_CAINFO;
    }

    /** A line as a page offers it for the terminal. */
    async shell(line, cwd) {
        const { stdout } = await run('sh', ['-c', line], { env: this.environment, cwd });
        return stdout.trim();
    }

    async kubectl(...words) {
        const { stdout } = await run('kubectl', words, { env: this.environment, maxBuffer: 64 << 20 });
        return stdout;
    }

    /** An object, or nothing if there is none. */
    async get(kind, namespace, name) {
        const text = await this.kubectl('get', kind, name, ...(namespace ? ['-n', namespace] : []), '--ignore-not-found', '-o', 'json');
        return text.trim() === '' ? undefined : JSON.parse(text);
    }

    async list(kind, namespace) {
        return JSON.parse(await this.kubectl('get', kind, ...(namespace ? ['-n', namespace] : []), '-o', 'json')).items;
    }

    /** Waits until an answer is a true one, and returns it. */
    async becomes(what, ask, patience = 30_000) {
        const begun = Date.now();
        for (;;) {
            const answer = await ask();
            if (answer) return answer;
            if (Date.now() - begun > patience) throw new Error(`after ${patience / 1000} s it is not so that ${what}`);
            await new Promise(resolve => { setTimeout(resolve, 150); });
        }
    }

    gone(kind, namespace, name, patience) {
        return this.becomes(`${kind} ${name} is gone`, async () => !(await this.get(kind, namespace, name)), patience);
    }
}

/** Types a name into the dialog that asks for it; until it is right, the button must not be one. */
export async function confirm(page, name, action) {
    const dialog = page.getByRole('dialog');
    const button = dialog.getByRole('button', { name: action, exact: true });
    const field = dialog.getByRole('textbox');
    await field.waitFor();
    for (const wrong of ['', `${name}x`]) {
        await field.fill(wrong);
        if (await button.isEnabled()) throw new Error(`“${action}” can be clicked with “${wrong}” in place of “${name}”`);
    }
    await field.fill(name);
    await button.click();
    await dialog.waitFor({ state: 'hidden', timeout: 20_000 });
}

/** Says yes in the dialog that asks once more, after it has been left once: whoever leaves it has done nothing. */
export async function agree(page, opener, action, ...named) {
    const dialog = page.getByRole('dialog');
    await opener.click({ timeout: 30_000 });
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    await opener.click();
    for (const name of named) await dialog.getByText(name).first().waitFor();
    await dialog.getByRole('button', { name: action, exact: true }).click();
    await dialog.waitFor({ state: 'hidden', timeout: 20_000 });
}

/** Leaves a console that has the focus with the keys that the page names, after Tab and Escape did not. */
export async function leaveConsole(page) {
    const inside = () => page.evaluate(() => Boolean(document.activeElement.closest('.fw-terminal, .fw-screen')));
    for (const key of ['Tab', 'Escape']) await page.keyboard.press(key);
    if (!await inside()) throw new Error('a key of the machine left the console');
    const keys = ['Control', 'Alt', 'Shift'];
    for (const key of keys) await page.keyboard.down(key);
    if (!await inside()) throw new Error('it is left while keys are down, which the machine then takes for held');
    for (const key of keys) await page.keyboard.up(key);
    await page.waitForFunction(() => document.activeElement.id === 'console-after', undefined, { timeout: 5_000 });
}

/** A button of the page by its whole name. */
export function button(page, name) {
    return page.getByRole('button', { name, exact: true });
}

/** The entry of a list or the row of a table that has a text in it; what is told of actions at the bottom is none. */
export function entry(page, text) {
    return page.locator('li:not(.pf-v6-c-alert-group__item), .fw-table-body [role="row"]').filter({ hasText: text });
}

/** Has lists of a kind answered as the server does, but with other objects in them; what is watched after that is the server's. */
export async function listed(page, pattern, path, change) {
    const { body } = await ask(page, path);
    await page.route(pattern, route => {
        const request = route.request();
        if (request.method() !== 'GET' || new URL(request.url()).searchParams.get('watch')) return route.fallback();
        return route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify({ ...body, items: change(body.items) }) });
    });
}

/** An answer of the portal's own API, with the session of the browser. */
export function ask(page, path) {
    return page.evaluate(async where => {
        const answer = await fetch(where);
        return { status: answer.status, body: await answer.json().catch(() => undefined) };
    }, path);
}
