// More random changes of a bundle.

import './verify-bundle.test.js';
