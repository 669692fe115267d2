// Bounds from both sides, and lists that are neither shorter nor longer.
import type { Mutation } from '../mutation.ts';

export const boundMutations: readonly Mutation[] = [
  {
    name: 'keys-kept-half',
    promise: 'a key is remembered for idempotency_keep',
    file: 'src/worker/execution/idempotency/purge.ts',
    before: 'utcTime(Date.now() - this.#keepMs)',
    after: 'utcTime(Date.now() - this.#keepMs / 2)',
    tests: ['test/unit/worker/execution/idempotency/purge.test.ts'],
  },
  {
    name: 'cors-method-override',
    promise: 'pages may send the headers of the list, and no other',
    file: 'src/worker/request/cors.ts',
    before: "traceparent, tracestate'",
    after: "traceparent, tracestate, X-HTTP-Method-Override'",
    tests: ['test/unit/worker/request/cors.test.ts'],
  },
  {
    name: 'chunk-extension-mebibyte',
    promise: 'the line of a chunk has at most 1 KiB',
    file: 'src/worker/http/body-frame.ts',
    before: 'const maxSizeLineBytes = 1024 + 1;',
    after: 'const maxSizeLineBytes = 1024 * 1024;',
    tests: ['test/unit/worker/http/body-frame.test.ts'],
  },
  {
    name: 'headers-of-16-kib-refused',
    promise: 'headers of exactly 16 KiB are taken',
    file: 'src/worker/http/header-section.ts',
    before: 'const limit = Math.min(bytes.length, from + maxBytes + 2);',
    after: 'const limit = Math.min(bytes.length, from + maxBytes + 1);',
    tests: ['test/unit/worker/http/intake-limits.test.ts'],
  },
];
