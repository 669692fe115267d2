// The form of requests, to the letter and to the byte.
import type { Mutation } from '../mutation.ts';

export const httpMutations: readonly Mutation[] = [
  {
    name: 'header-101',
    promise: 'a request has at most 100 headers',
    file: 'src/worker/http/request.ts',
    before: 'if (rawHeaders.length > 2 * maxHeaders && !isForwarded)',
    after: 'if (rawHeaders.length > 2 * maxHeaders + 2 && !isForwarded)',
    tests: ['test/unit/worker/http/request-head.test.ts'],
  },
  {
    name: 'two-authorizations',
    promise: 'a request with two Authorization headers is refused',
    file: 'src/worker/http/request.ts',
    before: "['host', 'authorization', 'content-type'].map",
    after: "['host', 'content-type'].map",
    tests: ['test/unit/worker/http/request-head.test.ts'],
  },
  {
    name: 'port-beyond-65535',
    promise: 'a Host with an invalid port is refused',
    file: 'src/worker/http/request.ts',
    before: 'if (match === null || Number(match[4] ?? 0) > 65_535) return null;',
    after: 'if (match === null) return null;',
    tests: ['test/unit/worker/http/request-head.test.ts'],
  },
  {
    name: 'body-of-the-limit-refused',
    promise: 'a body in chunks of exactly max_request_bytes is taken',
    file: 'src/worker/http/request.ts',
    before: 'if (body.length <= maxBytes) return;',
    after: 'if (body.length < maxBytes) return;',
    tests: ['test/unit/worker/http/request-body.test.ts'],
  },
  {
    name: 'url-of-the-limit-refused',
    promise: 'a URL of exactly max_request_bytes is taken',
    file: 'src/worker/http/request-syntax.ts',
    before: 'return version - 1 - target > maxUrlBytes ?',
    after: 'return version - 1 - target >= maxUrlBytes ?',
    tests: ['test/unit/worker/http/request-syntax-line.test.ts'],
  },
  {
    name: 'two-spaces',
    promise: 'the parts of a request line are separated by one space',
    file: 'src/worker/http/request-syntax.ts',
    before: 'if (bytes.indexOf(space, target) !== version - 1) return notOneSpace;',
    after: 'if (bytes[target] === space) return notOneSpace;',
    tests: ['test/unit/worker/http/request-syntax-line.test.ts'],
  },
  {
    name: 'small-letters-ignored',
    promise: 'a key of /db in small letters is refused',
    file: 'src/worker/endpoints/db/request.ts',
    before: 'return checks.has(capitals)',
    after: 'return checks.has(key)',
    tests: ['test/unit/worker/endpoints/db/request.test.ts'],
  },
];
