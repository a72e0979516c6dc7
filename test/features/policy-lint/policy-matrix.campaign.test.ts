// The matrices of all four policies.

import './policy-matrix.test.js';
