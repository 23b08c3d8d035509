// Console and screen of a machine that runs: what the guest shows, and keys that it gets.

import { leaveConsole } from './effects.mjs';

const BOOT = 150_000;

export async function serial({ person, report, film }, path) {
    const { page } = person;
    await report.step('the serial console shows the guest, and takes keys', async () => {
        await person.open(`${path}?tab=console`);
        await person.see(page.locator('.xterm'), 30_000);
        await page.locator('.xterm').click();
        const text = () => page.evaluate(() => globalThis.fairwayTerminal?.() ?? document.querySelector('.xterm-accessibility')?.textContent ?? '');
        for (const begun = Date.now(); !/login|#|\$/.test(await text()); ) {
            if (Date.now() - begun > BOOT) throw new Error(`the console shows: ${(await text()).slice(-300)}`);
            await page.keyboard.press('Enter');
            await page.waitForTimeout(1_000);
        }
        await leaveConsole(page);
        await person.check('console');
        await film.frame('console', 'Its serial console');
    });
}

export async function screen({ person, report, film }, path) {
    const { page } = person;
    /** Messages of keys that went to the screen: those of the protocol begin with 4, those of QEMU's extension with 255. */
    const keys = [];
    await report.step('the screen shows a picture', async () => {
        page.once('websocket', socket => socket.on('framesent', ({ payload }) => {
            if (typeof payload !== 'string' && [4, 255].includes(payload[0])) keys.push(payload);
        }));
        await person.open(`${path}?tab=console&type=vnc`);
        const canvas = await person.see(page.locator('canvas'), 30_000);
        for (const begun = Date.now(); ; ) {
            const size = await canvas.evaluate(it => it.width * it.height);
            if (size > 100_000) break;
            if (Date.now() - begun > 30_000) throw new Error('the screen stays empty');
            await page.waitForTimeout(200);
        }
        await page.waitForTimeout(500);
        await person.check('screen');
        await film.frame('screen', 'Its screen');
    });
    await report.step('the screen is reached and left with the keyboard', async () => {
        await page.getByRole('button', { name: 'Full screen' }).focus();
        await page.keyboard.press('Tab');
        if (!await page.evaluate(() => document.activeElement.tagName === 'CANVAS')) throw new Error('Tab does not lead to the screen');
        await leaveConsole(page);
    });
    await report.step('keys that the browser keeps for itself, and texts, are sent to the screen', async () => {
        const sent = async (what, count) => {
            for (const begun = Date.now(); keys.length < count; await page.waitForTimeout(50)) {
                if (Date.now() - begun > 5_000) throw new Error(`${what}: ${keys.length} messages of keys, not ${count}`);
            }
            keys.length = 0;
        };
        keys.length = 0;
        await page.getByRole('button', { name: 'Send key' }).click();
        await page.getByRole('menuitem', { name: 'Ctrl+Alt+F2', exact: true }).click();
        await sent('three keys, down and up', 6);
        await page.getByRole('button', { name: 'Paste as keystrokes' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByLabel('What is typed into the machine').fill('aBä');
        await person.see(dialog.getByText('left out: ä'));
        await person.check('paste');
        await dialog.getByRole('button', { name: 'Type', exact: true }).click();
        await dialog.waitFor({ state: 'hidden' });
        await sent('a letter, and one with Shift', 6);
        await page.getByRole('button', { name: 'Full screen' }).click();
        await page.waitForFunction(() => document.fullscreenElement?.classList.contains('fw-screen'));
        await page.evaluate(() => document.exitFullscreen());
        await person.check('keys');
    });
}
