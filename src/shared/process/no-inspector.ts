// Imported first by every entry file: SIGUSR1 must not open Node's inspector.
// Must not know anything else; it acts by being loaded.
process.on('SIGUSR1', () => {});
