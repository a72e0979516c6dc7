// Hostile specs of the maximum size.

import './parse-spec.test.js';
