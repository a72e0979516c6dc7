// Removes what the compiler wrote before: it never removes the output of a source file that is gone, and a tool
// that still loads that output would work here and fail in a clone.

import { rmSync } from 'node:fs';

rmSync(new URL('../../build/compiled/', import.meta.url), { recursive: true, force: true });
