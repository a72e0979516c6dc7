// The hook program that `turnpike agents install` copies out of the package (`tools/build/bundle-hook.mjs`). Clients
// start it as `node FILE hook CLIENT ...`.

import { runHook } from './run-hook.js';

await runHook(process.argv.slice(3));
