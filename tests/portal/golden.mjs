// The golden path: from a card to a machine whose console and screen can be used, and its end, as a person goes it.

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk4mFcXrAbJHW8oC9y3Bn8g1ZbCwQdVn0nYw3x1t1Zq person@example.com';
const BOOT = 150_000;

export async function golden(browser, settings, report) {
    if (!settings.guest) return;
    const person = await browser.person();
    const { page } = person;
    await person.signIn();
    let made = false;
    await report.step('a card, a form, a review', async () => {
        await person.open('/create', 'Virtual machine');
        await page.getByRole('link', { name: 'Choose Virtual machine', exact: true }).click();
        await page.getByLabel(/^Name/).first().fill('golden');
        await person.shot('golden-1-form');
        await next(page);
        await page.getByLabel(/SSH public key/).first().fill(KEY);
        await person.shot('golden-2-machine');
        await next(page);
        await next(page);
        await person.see(page.getByText('virtual-machine.yaml'), 30_000);
        await person.check('review');
        await person.shot('golden-3-review');
        await page.getByRole('button', { name: /^create/i }).last().click();
        made = true;
    });
    await report.step('steps are followed to the end', async () => {
        if (!made) throw new Error('nothing was begun');
        await person.see(page.getByText(/succeeded|finished|done/i), 90_000);
        await person.check('run');
        await person.shot('golden-4-run');
    });
    await report.step('its Application becomes Synced', async () => {
        await person.open('/applications/openshift-gitops/golden', 'golden');
        await person.see(page.getByText('Synced', { exact: true }), 60_000);
        // Its objects are there, and the page knows it.
        const objects = page.getByRole('region', { name: 'Objects of golden' });
        await person.see(objects.getByText(/^Service · Healthy/));
        if (/Missing/.test(await objects.textContent())) throw new Error(`something is missing: ${await objects.textContent()}`);
        await person.shot('golden-5-application');
    });
    await report.step('its machine runs', async () => {
        await person.open('/machines/user-vms/golden', 'golden');
        await person.see(page.getByText('Running', { exact: true }), BOOT);
        await person.shot('golden-6-machine');
    });
    // A guest of its own, which has booted meanwhile: two at once are slow where processors are emulated.
    await machine(person, report, settings, '/machines/team/guest');
    await person.context.close();
}

/** Console and screen of a machine that runs. */
async function machine(person, report, settings, path) {
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
        await person.check('console', { axe: false });
        await person.shot('golden-7-console');
    });
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
        await person.check('screen', { axe: false });
        await person.shot('golden-8-screen');
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
        await person.check('keys', { axe: false });
    });
}

async function next(page) {
    await page.getByRole('button', { name: /^(next|review)/i }).last().click();
}
