// The guards: which requests are accepted.
import type { Mutation } from '../mutation.ts';

export const guardMutations: readonly Mutation[] = [
  {
    name: 'last-token-only',
    promise: 'each of several tokens is accepted',
    file: 'src/worker/request/identify.ts',
    before: "tokens.map((token) => hash('sha256', token))",
    after: "tokens.slice(-1).map((token) => hash('sha256', token))",
    tests: ['test/unit/worker/request/identify.test.ts'],
  },
  {
    name: 'revoked-token',
    promise: 'a removed token is refused',
    file: 'src/worker/request/identify.ts',
    before: 'replace(credentials: Credentials): void {',
    after:
      'replace(credentials: Credentials): void {\n    if (credentials.tokens.length > 0) return;',
    tests: ['test/unit/worker/request/identify.test.ts'],
  },
  {
    name: 'same-site-page',
    promise: 'a page of the same site, but another origin, runs no SQL',
    file: 'src/worker/request/guard.ts',
    before:
      "return site === undefined || site === 'same-origin' || site === 'none' ? null : otherSite;",
    after: "return site !== 'cross-site' ? null : otherSite;",
    tests: ['test/unit/worker/request/guard.test.ts'],
  },
  {
    name: 'form-as-link',
    promise: 'a form of another site does not count as a followed link',
    file: 'src/worker/request/guard.ts',
    before: "    headers.origin === undefined &&\n    headers['sec-purpose']",
    after: "    headers['sec-purpose']",
    tests: ['test/unit/worker/request/guard.test.ts'],
  },
  {
    name: 'subdomain-as-host',
    promise: 'a name below a listed one is not listed',
    file: 'src/worker/request/guard.ts',
    before: 'host === null || allowed.has(host)',
    after: "host === null || allowed.has(host.replace(/^[^.]+\\./, ''))",
    tests: ['test/unit/worker/request/guard.test.ts'],
  },
  {
    name: 'unsigned-token-taken',
    promise: 'a consistency token without a signature is invalid if gateways share a key',
    file: 'src/worker/servers/consistency/token.ts',
    before: 'if (key !== null && !isSigned(',
    after: "if (key !== null && mac !== '' && !isSigned(",
    tests: ['test/unit/worker/servers/consistency/token.test.ts'],
  },
  {
    name: 'other-scheme-as-own',
    promise: 'a page of https:// is of another origin than a gateway without TLS',
    file: 'src/worker/request/guard.ts',
    before: 'return protocol === scheme && host ===',
    after: 'return protocol !== null && host ===',
    tests: ['test/unit/worker/request/guard.test.ts'],
  },
];
