// Texts of strangers stay texts: titles, labels, file names, commits, messages of conditions.

import { headersOf } from './browser.mjs';

const PLACES = [
    ['/catalog', '<img src=x onerror=alert'],
    ['/applications/openshift-gitops/shop', 'settings'],
    ['/machines/team/stopped-1?tab=overview', '<img src=x onerror=alert'],
    ['/machines/team/stopped-1?tab=yaml', 'onerror'],
    ['/repositories/root/shop', '<img src=x onerror=alert(1)>.txt'],
    ['/repositories/root/shop?tab=commits', '<script>alert('],
    [`/repositories/root/shop?path=${encodeURIComponent('<img src=x onerror=alert(1)>.txt')}`, '<script>alert(3)</script>'],
    ['/gateways?tab=products', '<img src=x onerror=alert'],
];

export async function hostile(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    for (const [path, sign] of PLACES) {
        await report.step(`a stranger's text stays a text on ${path}`, async () => {
            await person.open(path, sign);
            await person.check(path, { axe: false });
            const made = await person.page.evaluate(() => document.querySelectorAll('img[src="x"], script:not([src]):not([type])').length);
            if (made > 0) throw new Error(`${made} elements came out of a text`);
        });
    }
    await report.step('the page cannot be framed, and needs no inline script', async () => {
        const policy = (await headersOf(settings.portal))['content-security-policy'] ?? '';
        if (!/frame-ancestors 'none'/.test(policy)) throw new Error(`the policy is ${policy}`);
        const scripts = /script-src ([^;]*)/.exec(policy)?.[1] ?? /default-src ([^;]*)/.exec(policy)?.[1] ?? '';
        if (/unsafe-inline|unsafe-eval/.test(scripts)) throw new Error(`scripts: ${scripts}`);
    });
    await report.step('a request without the token of the page changes nothing', async () => {
        person.tolerated = [/Failed to load resource/];
        const [status, after] = await person.page.evaluate(async () => {
            const path = '/k8s/clusters/root/api/v1/namespaces/default/configmaps';
            const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'forged' } });
            const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
            return [answer.status, (await fetch(`${path}/forged`)).status];
        });
        person.tolerated = [];
        if (status !== 403 || after !== 404) throw new Error(`it is answered with ${status}, and the object then with ${after}`);
    });
    await report.step('no address of the application has a token in it', async () => {
        if (/token|code=|secret/i.test(person.page.url())) throw new Error(person.page.url());
    });
    await person.context.close();
}
