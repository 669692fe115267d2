// Ignores SIGUSR1, which would open Node's inspector. Every entry file imports it first.
process.on('SIGUSR1', () => {});
