# Verifies bank.checked: the answer is in a file.
cat checked
