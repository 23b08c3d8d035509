// Every page with real data: it shows what is there, says nothing in the console, breaks no policy and has no serious barrier; on a wide
// screen, on a phone, light and dark.

/** Path, what must be seen, name of the screenshot. */
export const PAGES = [
    ['/home', 'Home', 'home'],
    ['/catalog', 'shop', 'catalog'],
    ['/catalog/component/default/shop', 'About', 'entity'],
    ['/catalog/component/default/shop?tab=relations', 'ownedBy', 'relations'],
    ['/catalog/api/default/shop-api?tab=definition', 'openapi: 3.1.0', 'definition'],
    ['/create', 'Virtual machine', 'create'],
    ['/voyages', 'Runs', 'runs'],
    ['/applications', 'shop', 'applications'],
    ['/applications/openshift-gitops/shop', 'settings', 'application'],
    ['/applications/openshift-gitops/shop?view=list', 'ConfigMap', 'application-list'],
    ['/applications/openshift-gitops/shop?tab=summary', 'Disable Auto-Sync', 'application-summary'],
    ['/applications/openshift-gitops/shop?tab=history', 'History and rollback', 'application-history'],
    ['/applications/openshift-gitops/shop?tab=events', 'Events', 'application-events'],
    ['/applications/openshift-gitops/shop?tab=why', 'Try again', 'application-why'],
    ['/applications/openshift-gitops/shop?tab=yaml', 'repoURL', 'application-yaml'],
    [`/applications/openshift-gitops/shop?object=${encodeURIComponent('/ConfigMap/shop/settings')}&panel=live`, 'replicas', 'application-object'],
    ['/machines', 'stopped-1', 'machines'],
    ['/machines/team/stopped-1', 'Stopped', 'machine'],
    ['/machines/team/stopped-1?tab=yaml', 'runStrategy', 'machine-yaml'],
    ['/machines/team/stopped-1?tab=configuration', 'Memory', 'machine-configuration'],
    ['/machines/team/stopped-1?tab=events', 'Events', 'machine-events'],
    ['/machines/team/stopped-1?tab=snapshots', 'Take snapshot', 'machine-snapshots'],
    ['/machines/team/stopped-1?tab=migrations', 'not been moved', 'machine-migrations'],
    ['/machines/team/stopped-1?tab=diagnostics', 'Conditions', 'machine-diagnostics'],
    ['/gateways', 'web', 'gateways'],
    ['/gateways?tab=routes', 'api.example.com', 'routes'],
    ['/gateways?tab=policies', 'Enforced', 'policies'],
    ['/gateways?tab=services', '8080/TCP', 'services'],
    ['/gateways/services/shop/shop', 'No endpoints', 'service'],
    ['/gateways/ratelimitpolicies/team/second', 'auth.identity.userid', 'ratelimitpolicy'],
    ['/gateways/planpolicies/team/api', '100 in 60s', 'planpolicy'],
    ['/gateways/tlspolicies/team/web', 'TLSPolicy team/web', 'tlspolicy'],
    ['/gateways/dnspolicies/team/web', 'DNSPolicy team/web', 'dnspolicy'],
    ['/gateways/grpcroutes/team/calls', 'grpc.example.com', 'grpcroute'],
    ['/gateways/tlsroutes/team/sealed', 'sealed.example.com', 'tlsroute'],
    ['/gateways/tcproutes/team/bytes', 'TCPRoute team/bytes', 'tcproute'],
    ['/gateways?tab=usage', 'Published rules', 'usage'],
    ['/gateways/gateways/team/web', 'Programmed', 'gateway'],
    ['/gateways/httproutes/team/api', 'ResolvedRefs', 'httproute'],
    ['/gateways/httproutes/team/api?tab=why', 'Try again', 'httproute-why'],
    ['/gateways/authpolicies/team/api', 'apiKey', 'authpolicy'],
    ['/gateways/apiproducts/team/api?tab=yaml', 'approvalMode', 'apiproduct'],
    ['/gateways/apikeys/team/mine', 'to see it', 'apikey'],
    ['/gateways?tab=products', 'The API', 'apis'],
    ['/gateways?tab=keys', 'mine', 'api-keys'],
    ['/gateways?tab=explain', 'Explain', 'explain'],
    ['/repositories', 'shop', 'repositories'],
    ['/repositories/root/shop', 'manifests', 'repository'],
    ['/repositories/root/shop?tab=commits', 'Settings of the shop', 'repository-commits'],
    ['/repositories/root/shop?tab=pulls', 'More replicas', 'repository-pulls'],
    ['/repositories/root/shop?tab=why', 'Try again', 'repository-why'],
    ['/repositories/root/shop/pulls/1', 'ConfigMap', 'pull-request'],
    ['/repositories/root/shop/pulls/1?tab=diff', 'settings.yaml', 'pull-request-diff'],
    ['/workspaces', 'acme', 'workspaces'],
    ['/workspaces?tab=members', 'Add member', 'members'],
    ['/activity', 'Activity', 'activity'],
];

export async function pages(browser, settings, report) {
    const wide = await browser.person();
    await report.step('sign-in leads through the provider and back to the page that was asked for', async () => {
        await wide.signIn('/applications');
        await wide.see('shop');
        if (!new URL(wide.page.url()).pathname.endsWith('/applications')) throw new Error(wide.page.url());
    });
    for (const [path, sign, name] of PAGES) {
        await report.step(path, async () => {
            await wide.open(path, sign);
            await wide.check(path);
            await wide.shot(name);
        });
    }
    const state = await wide.context.storageState();
    await wide.context.close();
    const looks = [['phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }], ['dark', { colorScheme: 'dark' }]];
    for (const [look, options] of looks) {
        const person = await browser.person({ storageState: state, ...options });
        for (const [path, sign, name] of PAGES) {
            await report.step(`${path} (${look})`, async () => {
                await person.open(path, sign);
                if (look === 'phone') {
                    const over = await person.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
                    if (over > 1) throw new Error(`the page is ${over} px wider than the screen`);
                }
                await person.check(`${path} ${look}`);
                await person.shot(`${look}-${name}`);
            });
        }
        await person.context.close();
    }
}
