// The decisions of 500 random trees, simulated.

import './simulate.test.js';
