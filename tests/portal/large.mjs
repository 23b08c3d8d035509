// Logs of 50 MB, and a console that sends what it likes: the page stays one that can be used, and says what it leaves out.

import { button } from './effects.mjs';

/** Longer than this, and people click again. */
const PATIENCE_MS = 2_000;
const HEAP_MB = 200;
const FLOOD = 50_000_000;

/** That a click still has an effect soon, and that the tab has not grown by what it was given. */
async function usable(person) {
    const begun = Date.now();
    await person.page.evaluate(() => new Promise(resolve => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
    const took = Date.now() - begun;
    const session = await person.context.newCDPSession(person.page);
    await session.send('HeapProfiler.collectGarbage');
    const heap = Math.round((await session.send('Runtime.getHeapUsage')).usedSize / 1048576);
    const nodes = await person.page.evaluate(() => document.querySelectorAll('*').length);
    if (took > PATIENCE_MS || heap > HEAP_MB || nodes > 30_000) throw new Error(`two frames take ${took} ms, the heap has ${heap} MB, the page ${nodes} elements`);
    return `two frames in ${took} ms, heap ${heap} MB, ${nodes} elements`;
}

export async function large(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const { page } = person;
    for (const name of ['lines.log', 'line.log']) {
        await report.step(`30 MB in ${name}, of which the beginning is shown`, async () => {
            await person.open(`/repositories/root/shop?branch=logs&path=${name}`);
            await person.see(page.getByText('Only the beginning is shown'), 60_000);
            const shown = await page.getByRole('region', { name }).evaluate(it => it.textContent.length);
            if (shown < 100_000 || shown > 1_000_000) throw new Error(`${shown} letters are shown`);
            const note = await usable(person);
            const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download').click()]);
            let size = 0;
            for await (const piece of await download.createReadStream()) size += piece.length;
            if (size < 29_000_000) throw new Error(`${size} bytes were downloaded`);
            await person.check(name);
            return note;
        });
    }
    await report.step('50 MB, more than the Git host hands out: the page says so', async () => {
        person.tolerated = [/Failed to load resource/];
        await person.open('/repositories/root/shop?branch=logs&path=server.log');
        await person.see(page.locator('.pf-v6-c-empty-state').filter({ hasText: /large|limit|bytes|MiB/i }), 60_000);
        await person.check('server.log');
        await person.shot('too-large');
        person.tolerated = [];
    });
    if (settings.guest) {
        await sequences(person, report);
        await flood(person, report);
    }
    await person.context.close();
}

/** A serial line brings kilobytes in a second, so the peer of this console is one of the test; the page cannot tell. */
async function flood(person, report) {
    const { page } = person;
    await report.step('a console that brings 50 MB at once', async () => {
        await page.routeWebSocket(/\/console$/, socket => {
            const line = Buffer.from('all work and no play makes a guest dull\r\n'.repeat(1_600));
            for (let sent = 0; sent < FLOOD; sent += line.length) socket.send(line);
            setTimeout(() => socket.send(Buffer.from('\r\nthe end of it\r\n')), 3_000);
        });
        await person.open('/machines/team/guest?tab=console');
        await person.see(page.locator('.xterm-accessibility').getByText('the end of it'), 60_000);
        await person.see(page.locator('.xterm-accessibility').getByText('are left out'));
        const note = await usable(person);
        await person.check('flood');
        return note;
    });
}

/** Titles, the clipboard, a link, and questions whose answers a terminal would type. */
const SEQUENCES = '\x1b]2;taken over\x07\x1b]0;taken over\x07\x1b]52;c;dGFrZW4gb3Zlcg==\x07\x1b]8;;https://example.invalid/\x07a link\x1b]8;;\x07'
    + '\x1b[c\x1b[>c\x1b[5n\x1b[6n\x1b[?6n\x1b[14t\x1b[18t\x1b[?1004h\x1b[4$p\x1b[?25$p\x1bP$qm\x1b\\\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x07\r\nthe guest has spoken\r\n';

async function sequences(person, report) {
    const { page, context, settings } = person;
    await report.step('escape sequences change the terminal and nothing else', async () => {
        const typed = [];
        await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: settings.portal });
        await page.routeWebSocket(/\/console$/, socket => {
            socket.onMessage(piece => typed.push(String(piece)));
            setTimeout(() => socket.send(Buffer.from(SEQUENCES)), 500);
        });
        await person.open('/machines/team/guest?tab=console');
        await page.evaluate(() => navigator.clipboard.writeText('mine'));
        const title = await page.title();
        await person.see(page.locator('.xterm-accessibility').getByText('the guest has spoken'), 30_000);
        await page.waitForTimeout(500);
        const wrong = [];
        if (await page.title() !== title) wrong.push(`the title is ${await page.title()}`);
        const clip = await page.evaluate(() => navigator.clipboard.readText());
        if (clip !== 'mine') wrong.push(`the clipboard has ${clip}`);
        if (typed.length > 0) wrong.push(`nobody typed, and the guest got ${JSON.stringify(typed)}`);
        // That keys are heard at all: without that, silence would mean nothing.
        await page.locator('.xterm').click();
        await page.keyboard.press('Enter');
        await page.waitForTimeout(300);
        if (!typed.includes('\r')) wrong.push('a key was not sent');
        if (wrong.length > 0) throw new Error(wrong.join('; '));
        await person.check('sequences');
    });
}
