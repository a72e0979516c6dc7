// A thousand random histories of approvals.

import './approval.test.js';
