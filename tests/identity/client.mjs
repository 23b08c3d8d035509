// npm's openid-client against a realm: code and PKCE, userinfo, refresh with rotation, reuse, devices.
// node client.mjs '{"issuer": ..., "user": ..., "password": ..., "secret": ...}'
import assert from 'node:assert/strict';
import dns from 'node:dns';
import * as client from 'openid-client';

// Not every resolver knows RFC 6761.
const lookup = dns.lookup;
dns.lookup = (host, ...rest) => lookup(host.endsWith('.localhost') ? '127.0.0.1' : host, ...rest);

const { issuer, user, password, secret } = JSON.parse(process.argv[2]);
const hidden = (html) => Object.fromEntries([...html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map((it) => [it[1], it[2]]));

class Browser {
  cookies = {};
  async go(url, form) {
    const headers = { cookie: Object.entries(this.cookies).map(([k, v]) => `${k}=${v}`).join('; ') };
    const body = form && new URLSearchParams(form);
    const answer = await fetch(url, { method: form ? 'POST' : 'GET', headers, body, redirect: 'manual' });
    for (const cookie of answer.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0].split(/=(.*)/s);
      this.cookies[name] = value;
    }
    return answer;
  }
  async signIn(url) {
    const page = await (await this.go(url)).text();
    return this.go(url, { ...hidden(page), username: user, password });
  }
}

async function codeFlow(config, redirect_uri) {
  const verifier = client.randomPKCECodeVerifier();
  const [state, nonce] = [client.randomState(), client.randomNonce()];
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri, state, nonce, scope: 'openid profile email groups offline_access',
    code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  });
  const answer = await new Browser().signIn(url.href);
  assert.equal(answer.status, 303, await answer.text());
  return client.authorizationCodeGrant(config, new URL(answer.headers.get('location')), {
    pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce,
  });
}

const confidential = await client.discovery(new URL(issuer), 'web', secret);
const tokens = await codeFlow(confidential, 'https://app.example/cb');
assert.equal(tokens.claims().preferred_username, user);
const info = await client.fetchUserInfo(confidential, tokens.access_token, tokens.claims().sub);
assert.equal(info.email, `${user}@example.com`);
console.log('code and PKCE with a secret, and userinfo');

const open = await client.discovery(new URL(issuer), 'spa', undefined, client.None());
const first = await codeFlow(open, 'http://127.0.0.1:8123/cb');
const second = await client.refreshTokenGrant(open, first.refresh_token);
assert.notEqual(second.refresh_token, first.refresh_token);
assert.equal(second.claims().sub, first.claims().sub);
await assert.rejects(client.refreshTokenGrant(open, first.refresh_token), (it) => it.error === 'invalid_grant');
await assert.rejects(client.refreshTokenGrant(open, second.refresh_token), (it) => it.error === 'invalid_grant');
console.log('a public client on a loopback port, refresh with rotation, reuse found');

const device = await client.initiateDeviceAuthorization(open, { scope: 'openid profile' });
const browser = new Browser();
const page = `${issuer}/device`;
const signIn = await (await browser.go(device.verification_uri_complete)).text();
const confirm = await (await browser.go(page, { ...hidden(signIn), username: user, password })).text();
const done = await (await browser.go(page, { ...hidden(confirm), decision: 'allow' })).text();
assert.match(done, /The device is signed in/);
const byDevice = await client.pollDeviceAuthorizationGrant(open, device);
assert.equal(byDevice.claims().preferred_username, user);
console.log('the device flow');

await client.tokenRevocation(open, byDevice.refresh_token);
await assert.rejects(client.fetchUserInfo(open, byDevice.access_token, byDevice.claims().sub));
console.log('revocation');
