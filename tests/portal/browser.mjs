// A real Chromium, and what every look at a page has in common: nothing in the console, no violation of the content security policy, no
// serious barrier for people who use it otherwise than with eyes and mouse, and a screenshot.

import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import https from 'node:https';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { chromium } from 'playwright-core';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What a page of ours never needs, and what would run if a text of a stranger became part of a page. */
const WITNESS = () => {
    globalThis.fairwayViolations = [];
    globalThis.fairwayDialogs = [];
    document.addEventListener('securitypolicyviolation', event =>
        globalThis.fairwayViolations.push(`${event.violatedDirective}: ${event.blockedURI || event.sourceFile}`));
    for (const name of ['alert', 'confirm', 'prompt']) {
        globalThis[name] = text => { globalThis.fairwayDialogs.push(`${name}: ${text}`); };
    }
};

export class Browser {
    static async start(settings) {
        const browser = new Browser();
        browser.settings = settings;
        // A page out of a directory comes from no address, and Chromium would keep its WebSockets from this host's.
        const outOfDirectory = settings.dist ? ['--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets'] : [];
        browser.chromium = await chromium.launch({
            executablePath: settings.chromium,
            // Fairway's own authority is not one of the machine's. As root there is no sandbox to be had.
            args: ['--ignore-certificate-errors', '--enable-precise-memory-info', ...outOfDirectory, ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
        });
        await mkdir(settings.screens, { recursive: true });
        return browser;
    }

    async person(options = {}) {
        const context = await this.chromium.newContext({
            ignoreHTTPSErrors: true, viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options,
        });
        await context.addInitScript(WITNESS);
        if (this.settings.dist) await serveFrom(context, this.settings);
        return new Person(this.settings, context, await context.newPage());
    }

    close() {
        return this.chromium.close();
    }
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };

/** A build that is in no binary yet: its files come from a directory, with the headers that the server has for its own. */
async function serveFrom(context, { portal, dist }) {
    const { 'content-security-policy': policy } = await headersOf(portal);
    await context.route(url => url.href.startsWith(portal) && !/^\/(api|auth|k8s)\//.test(url.pathname), route => {
        const asked = join(dist, new URL(route.request().url()).pathname);
        const file = extname(asked) && existsSync(asked) ? asked : join(dist, 'index.html');
        // The server writes the nonce of its policy into the page.
        const nonce = /'nonce-([^']+)'/.exec(policy ?? '')?.[1];
        const body = file.endsWith('index.html') ? readFileSync(file, 'utf8').replace('<head>', `<head><meta name="csp-nonce" content="${nonce}">`) : readFileSync(file);
        return route.fulfill({ status: 200, contentType: TYPES[extname(file)] ?? 'application/octet-stream', headers: policy ? { 'content-security-policy': policy } : {}, body });
    });
}

/** The headers of the first page. The browser knows that names below localhost are this machine; not every resolver does. */
export function headersOf(portal) {
    const { hostname, port } = new URL(portal);
    const asked = { host: '127.0.0.1', port, servername: hostname, path: '/', headers: { Host: `${hostname}:${port}` }, rejectUnauthorized: false };
    return new Promise((resolve, reject) => https.get(asked, answer => { answer.resume(); resolve(answer.headers); }).on('error', reject));
}

export class Person {
    constructor(settings, context, page) {
        this.settings = settings;
        this.context = context;
        this.page = page;
        this.complaints = [];
        /** Messages that a step provokes on purpose. */
        this.tolerated = [];
        page.on('console', message => {
            if (message.type() === 'error') this.complain(`console: ${message.text()}`);
        });
        page.on('response', answer => {
            // The browser's own message does not say which request it was.
            if (answer.status() >= 500) this.complain(`${answer.status()} ${answer.url()}`);
        });
        // Addresses are in histories, in logs of proxies and in what other sites are told: nothing that lets somebody in may be in one.
        this.asked = [];
        context.on('request', request => this.asked.push(request.url(), request.headers().referer ?? ''));
        context.on('page', opened => opened.on('websocket', socket => this.asked.push(socket.url())));
        page.on('websocket', socket => this.asked.push(socket.url()));
        page.on('pageerror', error => this.complain(`exception: ${error.message}`));
        page.on('crash', () => this.complain('the page crashed'));
    }

    complain(text) {
        // Where the sign-in leads back to, the binary's own application is shown, whose files are not in the directory, or that it has none.
        if (this.settings.dist && /503|Failed to load module script/.test(text)) return;
        // Guests come and go with network interfaces of this machine; the browser then drops what is under way, and says so.
        if (/net::ERR_NETWORK_CHANGED/.test(text)) return;
        if (!this.tolerated.some(pattern => pattern.test(text))) this.complaints.push(text);
    }

    /** Signs in with the form of the provider. */
    async signIn(path = '/') {
        const { portal, user, password } = this.settings;
        // Nobody is signed in yet, and the application asks.
        this.tolerated.push(/401/);
        await this.page.goto(`${portal}/auth/login?return=${encodeURIComponent(path)}`);
        await this.page.fill('#username', user);
        await this.page.fill('#password', password);
        await Promise.all([
            this.page.waitForURL(url => url.href.startsWith(portal) && !url.pathname.startsWith('/auth/'), { timeout: 20_000 }),
            this.page.click('button[type=submit]'),
        ]);
        // What a redirection leads to does not come out of the directory; what is asked for does.
        if (this.settings.dist) await this.page.goto(this.page.url());
        this.csrf = await this.page.evaluate(async () => (await (await fetch('/auth/session')).json()).csrf);
        this.tolerated = [];
    }

    async open(path, sign) {
        await this.page.goto(this.settings.portal + path, { waitUntil: 'domcontentloaded' });
        if (sign) await this.see(sign);
    }

    /** Waits until a text can be seen, or something that a locator names. */
    async see(sign, timeout = 20_000) {
        const found = typeof sign === 'string' ? this.page.getByText(sign, { exact: false }).filter({ visible: true }).first() : sign.first();
        await found.waitFor({ state: 'visible', timeout });
        return found;
    }

    /** What lets the one in who has it, and was in an address or in what was said of where a request came from. */
    async leaks() {
        const asked = [...new Set(this.asked.splice(0))];
        const cookies = (await this.context.cookies()).map(it => it.value).filter(value => value.length >= 16);
        const secrets = [...cookies, this.csrf, this.settings.password].filter(Boolean);
        return asked.filter(address => {
            // The code of a sign-in is good once, and for whoever has begun it.
            const read = decodeURIComponent(address.replace(/%(?![0-9a-f]{2})/gi, '%25'));
            return secrets.some(secret => read.includes(secret)) || /[?&#](access_|id_|refresh_)?token=/.test(read) || /\beyJ[\w-]{10,}\.[\w-]{10,}\./.test(read);
        }).map(address => `something that lets people in is in an address: ${address.slice(0, 200)}`);
    }

    /** A screenshot, kept for people. */
    async shot(name) {
        await this.page.screenshot({ path: join(this.settings.screens, `${name}.png`) });
    }

    /** What must hold of every page, after it has been used. */
    async check(name, { axe = true } = {}) {
        const [violations, dialogs] = await this.page.evaluate(() => [globalThis.fairwayViolations, globalThis.fairwayDialogs]);
        const found = [
            ...this.complaints,
            ...violations.map(text => `content security policy: ${text}`),
            ...dialogs.map(text => `a stranger's text ran: ${text}`),
            ...await this.leaks(),
        ];
        this.complaints = [];
        if (axe) found.push(...await this.barriers());
        if (found.length > 0) {
            await this.shot(`failed-${name.replace(/[^a-z0-9]+/gi, '-')}`);
            throw new Error(`${name}:\n    ${found.join('\n    ')}`);
        }
    }

    /** What axe calls serious or critical. The script is evaluated by the driver, which no policy of the page forbids. */
    async barriers() {
        // What fades in has little contrast until it is there. What turns for ever is not waited for.
        await this.page.evaluate(() => Promise.race([
            Promise.allSettled(document.getAnimations()
                .filter(one => Number.isFinite(one.effect?.getComputedTiming().endTime))
                .map(one => one.finished)),
            new Promise(resolve => setTimeout(resolve, 2000)),
        ]));
        await this.page.evaluate(axeSource);
        const results = await this.page.evaluate(() => globalThis.axe.run(document, {
            resultTypes: ['violations'],
            // A guest's screen is a picture, and a terminal keeps its own second tree for screen readers.
            exclude: [['.xterm'], ['canvas']],
        }));
        return results.violations
            .filter(violation => ['serious', 'critical'].includes(violation.impact))
            .map(violation => `axe ${violation.id} (${violation.impact}): ${violation.help}; ${violation.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
    }
}

/** Runs steps one after the other, tells of each, and goes on after a failure so that one run shows all of them. */
export class Report {
    failed = 0;

    async step(what, check) {
        const begun = performance.now();
        try {
            const note = await check();
            console.log(`  ok ${String(Math.round(performance.now() - begun)).padStart(6)} ms  ${what}${note ? `: ${note}` : ''}`);
        } catch (error) {
            this.failed += 1;
            console.log(`  FAILED ${what}\n    ${String(error.message ?? error).slice(0, 2000)}`);
        }
    }
}
