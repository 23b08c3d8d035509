// A real OIDC provider (npm: oidc-provider) on a free port of the loopback address, for the tests of OIDC login.
//
//   node provider.mjs MODULES CERTIFICATE KEY AUTHORITY
//
// Prints one line of JSON when it is ready: its issuer, and tokens that it gave to clients over HTTPS, by name. A line
// `rotate` on its standard input makes it sign with new keys under the same issuer, and prints such a line again.
//
// Browsers sign in by a header: `x-account: 7` is the person 7. A line `people JSON` says what there is to say of each, and a line
// `realm URL` makes the client `realm`, which gets codes at that address. Both are answered as `rotate` is.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [modules, certificate, key, authority] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(join(resolve(modules), 'oidc-provider/lib/index.js')));

const AUDIENCE = 'urn:fairway';
// Client, algorithm of its tokens, and what the provider says of it.
const CLIENTS = [
    ['jane', 'RS256', { groups: ['dev', 'ops'], email: 'jane@example.com', email_verified: true, tenant: 'blue' }],
    ['joe', 'ES256', { groups: 'dev', email: 'joe@example.com', email_verified: false, tenant: 'red' }],
    ['pat', 'PS256', { groups: ['system:masters'], tenant: 'blue' }],
    // Whose tokens are over at once.
    ['late', 'RS256', { tenant: 'blue' }],
];

let people = {};
let callback;

function signingKeys() {
    const jwk = (pair, alg) => ({ ...pair.privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: randomUUID() });
    const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
    return [jwk(rsa(), 'RS256'), jwk(rsa(), 'PS256'), jwk(generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'ES256')];
}

function provider(issuer) {
    const algorithm = (id) => CLIENTS.find(([client]) => client === id)[1];
    const made = new Provider(issuer, {
        jwks: { keys: signingKeys() },
        clients: [
            ...CLIENTS.map(([id]) => ({
                client_id: id,
                client_secret: `secret-of-${id}`,
                grant_types: ['client_credentials'],
                redirect_uris: [],
                response_types: [],
            })),
            ...(callback ? [{ client_id: 'realm', client_secret: 'secret of realm', redirect_uris: [callback] }] : []),
        ],
        claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'], email: ['email'] },
        findAccount: (ctx, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
        interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
        // Nobody is asked whether a client may know who he is.
        loadExistingGrant: async (ctx) => {
            const { client, provider, session } = ctx.oidc;
            const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
            grant.addOIDCScope('openid profile email');
            await grant.save();
            return grant;
        },
        features: {
            clientCredentials: { enabled: true },
            devInteractions: { enabled: false },
            resourceIndicators: {
                enabled: true,
                getResourceServerInfo: (ctx, indicator, client) => ({
                    scope: '',
                    audience: AUDIENCE,
                    accessTokenFormat: 'jwt',
                    accessTokenTTL: client.clientId === 'late' ? 1 : 600,
                    jwt: { sign: { alg: algorithm(client.clientId) } },
                }),
            },
        },
        extraTokenClaims: (ctx, token) => CLIENTS.find(([id]) => id === token.clientId)?.[2],
    });
    const answer = made.callback();
    return (request, response) => {
        if (!request.url.startsWith('/interaction/')) return answer(request, response);
        const login = { accountId: request.headers['x-account'] };
        return made.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
    };
}

let handler;
const server = https.createServer(
    { cert: readFileSync(certificate), key: readFileSync(key) },
    (request, response) => handler(request, response),
);
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `https://127.0.0.1:${server.address().port}`;

function token(client) {
    const body = new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE }).toString();
    const options = {
        method: 'POST',
        ca: readFileSync(authority),
        auth: `${client}:secret-of-${client}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length },
    };
    return new Promise((done, failed) => {
        const request = https.request(`${issuer}/token`, options, async (response) => {
            let text = '';
            for await (const chunk of response) text += chunk;
            const answer = JSON.parse(text);
            if (answer.access_token) done(answer.access_token);
            else failed(new Error(text));
        });
        request.on('error', failed);
        request.end(body);
    });
}

let tokens;
const tell = () => console.log(JSON.stringify({ issuer, tokens }));

async function begin() {
    handler = provider(issuer);
    tokens = {};
    for (const [client] of CLIENTS) tokens[client] = await token(client);
    tell();
}

await begin();
createInterface({ input: process.stdin })
    .on('line', (line) => {
        const [command, rest] = line.split(/ (.*)/);
        if (command === 'people') {
            people = JSON.parse(rest);
            tell();
        }
        if (command === 'realm') callback = rest;
        if (['realm', 'rotate'].includes(command)) begin();
    })
    .on('close', () => process.exit(0));
