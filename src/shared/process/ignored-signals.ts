// Ignores SIGUSR1, which would open Node's inspector, and SIGUSR2, which would end the process. Every entry file imports it first.
process.on('SIGUSR1', () => {});
process.on('SIGUSR2', () => {});
