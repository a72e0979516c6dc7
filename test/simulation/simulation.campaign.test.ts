// All seeds of the suite beside it.

import './simulation.test.js';
