// The decisions of 500 random trees, taken again.

import './simulate.test.js';
