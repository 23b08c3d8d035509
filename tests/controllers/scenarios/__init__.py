"""One module for each real program: `PROGRAM` names it, `prepare` gets it, `run` shows what it does on Fairway."""
