// The first thing that people see: the pages of sign-in. They have no script and load nothing from elsewhere, and look as the portal does.

const LOOKS = [
    ['wide', {}],
    ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
    ['dark', { colorScheme: 'dark' }],
];

/** How a control looks, in the browser's words. */
const look = locator => locator.evaluate(it => {
    const { borderRadius, backgroundColor, color, fontFamily } = getComputedStyle(it);
    return { isPill: Number.parseFloat(borderRadius) * 2 >= it.getBoundingClientRect().height, backgroundColor, color, font: fontFamily };
});

/** The page has what the portal has: its letters, its blue, its round buttons. */
async function alike(person, dark) {
    const { page } = person;
    const action = page.locator('button[type=submit], a.button').first();
    const found = await look(action);
    const blue = dark ? 'rgb(146, 197, 249)' : 'rgb(0, 102, 204)';
    if (!found.isPill) throw new Error(`the button is not round: ${JSON.stringify(found)}`);
    if (await action.evaluate(it => it.tagName) === 'BUTTON' && found.backgroundColor !== blue) throw new Error(`the button is ${found.backgroundColor}, not ${blue}`);
    if (!/Red ?Hat ?Text/.test(found.font)) throw new Error(`the letters are ${found.font}`);
    await page.locator('header svg').waitFor();
    await page.evaluate(() => document.fonts.ready);
    const letters = await page.evaluate(() => [...document.fonts].map(one => `${one.family} ${one.status}`).join());
    if (!/loaded/.test(letters)) throw new Error(`the portal's letters are not there: ${letters}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 1) throw new Error(`the page is ${over} px wider than the screen`);
    if (await page.locator('script').count() > 0) throw new Error('the page has a script');
}

export async function entrance(browser, settings, report) {
    for (const [name, options] of LOOKS) {
        const person = await browser.person(options);
        const { page } = person;
        const loaded = new Set();
        page.on('request', request => loaded.add(new URL(request.url()).origin));
        await report.step(`the sign-in page looks like the portal (${name})`, async () => {
            await page.goto(`${settings.portal}/auth/login?return=/home`);
            await person.see(page.locator('#password'));
            await alike(person, name === 'dark');
            await person.check(`sign-in ${name}`);
            await person.shot(`${name === 'wide' ? '' : `${name}-`}sign-in`);
            const sign = new URL(page.url()).origin;
            const strange = [...loaded].filter(origin => origin !== sign && origin !== new URL(settings.portal).origin);
            if (strange.length > 0) throw new Error(`something comes from ${strange.join(', ')}`);
        });
        await report.step(`a wrong password is told on it, and the name stays (${name})`, async () => {
            person.tolerated = [/40[0-9]/];
            await page.fill('#username', 'admin');
            await page.fill('#password', 'wrong');
            await page.click('button[type=submit]');
            await person.see(page.getByRole('alert'));
            if (await page.inputValue('#username') !== 'admin') throw new Error('the name has to be typed again');
            await person.check(`wrong password ${name}`);
            await person.shot(`${name === 'wide' ? '' : `${name}-`}sign-in-wrong`);
            person.tolerated = [];
        });
        await report.step(`what goes wrong on the way back looks alike, and leads to a new beginning (${name})`, async () => {
            person.tolerated = [/400/];
            await page.goto(`${settings.portal}/auth/callback?state=strange&code=strange`);
            await person.see(page.getByRole('alert'));
            await alike(person, name === 'dark');
            await person.check(`callback ${name}`);
            await person.shot(`${name === 'wide' ? '' : `${name}-`}sign-in-failed`);
            await page.getByRole('link', { name: 'Sign in' }).click();
            await person.see(page.locator('#password'));
            person.tolerated = [];
        });
        await person.context.close();
    }
    await report.step('the portal is dark from its first moment, and follows the system', () => darkness(browser, settings));
}

/** A page is never white before it is dark: the class is there before the application's script has run. */
async function darkness(browser, settings) {
    const person = await browser.person({ colorScheme: 'dark' });
    const { page } = person;
    await person.signIn('/home');
    let answer;
    const held = new Promise(resolve => { answer = resolve; });
    await page.route(/\/assets\/index-[^/]*\.js$/, async route => { await held; await route.fallback(); });
    await page.goto(`${settings.portal}/home`, { waitUntil: 'commit' });
    await page.locator('#root').waitFor({ state: 'attached' });
    const is = () => page.evaluate(() => document.documentElement.classList.contains('pf-v6-theme-dark'));
    if (!await is()) throw new Error('the page is light until the application runs');
    const floor = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    if (!floor.includes('dark')) throw new Error(`what the browser paints is ${floor}`);
    answer();
    await person.see('Needs attention');
    // The browser tells of it with its next frame.
    const becomes = (what, isDark) => page.waitForFunction(it => document.documentElement.classList.contains('pf-v6-theme-dark') === it, isDark, { timeout: 5_000 }).catch(() => { throw new Error(what); });
    await page.emulateMedia({ colorScheme: 'light' });
    await becomes('the system became light, and the page did not', false);
    await page.emulateMedia({ colorScheme: 'dark' });
    await becomes('the system became dark, and the page did not', true);
    await page.emulateMedia({ colorScheme: 'light' });
    await becomes('the system became light again, and the page did not', false);
    // What somebody has chosen holds, whatever the system says.
    await page.getByRole('button', { name: /^Light or dark/ }).click();
    await page.getByRole('menuitem', { name: 'Dark', exact: true }).click();
    if (!await is()) throw new Error('dark was chosen, and it is light');
    await person.check('dark by choice');
    await page.reload();
    await person.see('Needs attention');
    if (!await is()) throw new Error('the choice is forgotten');
    await page.getByRole('button', { name: /^Light or dark/ }).click();
    await page.getByRole('menuitem', { name: 'As the system', exact: true }).click();
    if (await is()) throw new Error('the system is light, and the page is not');
    await person.context.close();
}
