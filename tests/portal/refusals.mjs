// What the API can answer instead of data: each time the page says what happened and what to do.

const LIST = /\/k8s\/clusters\/[^/]+\/apis\/argoproj\.io\/v1alpha1\/.*applications/;

/** What the banner says while a watch is interrupted. */
const LOST = /(connection (was|is) lost|interrupted|reconnecting|not live)/i;

const CASES = [
    [401, 'Unauthorized', /sign in/i],
    [403, 'Forbidden', /(not allowed|may not|permission|right)/i],
    [409, 'Conflict', /(changed|again|conflict)/i],
    [409, 'AlreadyExists', /another name/i],
    [429, 'TooManyRequests', /(too many|again|wait)/i],
    [500, 'InternalError', /(server|again|log)/i],
    [0, 'nothing', /(does not answer|connected)/i],
];

export async function refusals(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    for (const [status, reason, advice] of CASES) {
        await report.step(`an answer of ${status ? `${status} ${reason}` : 'nothing at all'} is explained`, async () => {
            person.tolerated = [/Failed to load resource/, /net::ERR/, /^500 /];
            await person.context.route(LIST, route => status === 0 ? route.abort('connectionrefused') : route.fulfill({
                status, contentType: 'application/json',
                body: JSON.stringify({ apiVersion: 'v1', kind: 'Status', status: 'Failure', code: status, reason, message: `refused by the test with ${status}` }),
            }));
            try {
                await person.open('/applications');
                const told = person.page.getByRole('alert').or(person.page.locator('.pf-v6-c-alert, .pf-v6-c-empty-state')).filter({ hasText: advice });
                await person.see(told, 15_000);
                await person.check(`refusal ${status}`);
            } finally {
                await person.context.unroute(LIST);
                person.tolerated = [];
            }
        });
    }
    await report.step('a stream that is lost is told, and comes back', async () => {
        const watches = url => url.pathname.endsWith('/applications') && url.searchParams.get('watch') === 'true';
        person.tolerated = [/Failed to load resource/, /net::ERR/];
        await person.context.route(watches, route => route.abort('connectionreset'));
        const banner = person.page.getByText(LOST);
        try {
            await person.open('/applications', 'shop');
            await person.see(banner, 15_000);
        } finally {
            await person.context.unroute(watches);
        }
        await person.page.evaluate(() => dispatchEvent(new Event('online')));
        await banner.first().waitFor({ state: 'hidden', timeout: 30_000 });
        await person.check('lost stream', { axe: false });
        person.tolerated = [];
    });
    await person.context.close();
}
