// The matrices of all four policies.

import './matrix.test.js';
