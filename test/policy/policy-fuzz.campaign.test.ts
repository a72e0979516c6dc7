// More policy files that are none.

import './policy-fuzz.test.js';
