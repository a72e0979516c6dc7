// All 100 random sessions of session-machine.test.ts.

import './session-machine.test.js';
