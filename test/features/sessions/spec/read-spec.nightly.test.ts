// Hostile specs of the maximum size.

import './read-spec.test.js';
