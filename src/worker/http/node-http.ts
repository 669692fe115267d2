// The parts of node:http that the gateway uses: its tables, and its client for requests to other workers.

/**
 * node:http without the facade that an import statement puts before it. From Node 22 on, making that facade reads every export, and one of
 * them loads undici: 11 MiB and more in each worker (22.23 and 24.21), and on Node 22 an unhandled rejection where V8 has no WebAssembly.
 */
export const { METHODS, request, STATUS_CODES } = process.getBuiltinModule('node:http');
