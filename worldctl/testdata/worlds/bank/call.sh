# Performs bank.call and bank.checked.
if [ -e broken ]; then kill -9 $$; fi
echo '{"line": "good"}'
