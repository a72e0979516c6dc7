// The random sessions of the suite beside it, all 100 of them.

import './session-machine.test.js';
