"""What the ids of runs look like, as regular expressions."""

RUN_ID = "[a-zA-Z0-9_-]{1,168}"  # of any run: that of an inline subagent holds that of its object too
RUN_ID_PATTERN = f"^{RUN_ID}$"
CHOSEN_ID_PATTERN = "^[a-zA-Z0-9_-]{1,128}$"  # of a run that a client starts
