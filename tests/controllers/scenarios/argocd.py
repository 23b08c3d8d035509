PROGRAM="x"
LISTENS_EVERYWHERE=True
def prepare(): pass
